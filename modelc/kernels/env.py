"""What compiled kernels and the Python around them agree on: numbers only, so that importing it costs nothing.

An opcode sees two arrays of int64: E, the environment, holds base addresses and the numbers of the current batch; I,
the instruction, holds 16 numbers of which opcodes define 2 to 14 for themselves. One environment per engine, one
table per Program.
"""

from __future__ import annotations

# --- base addresses
WEIGHTS = 0  # the lowest matrix in memory
CONSTANTS = 1  # float64 and float32 vectors made at lowering (RoPE frequencies)
FLOATS = 2  # float32 activations
QUANTS = 3  # quantized activations, see activations.py
SCRATCH = 4  # per thread: attention scores, decoded blocks
KV = 5  # paged keys and values
TOKENS = 6  # int64 (rows,)
POSITIONS = 7  # int64 (rows,)
SLOTS = 8  # int64 (rows,): which sequence a row belongs to
PAGES = 9  # int64 (slots, PAGES_PER_SLOT): page numbers of each sequence
UNITS = 10  # int64 (N_UNITS, 2): first row and count of runs of consecutive positions of one sequence
OUT_ROWS = 11  # int64 (N_OUT,): rows whose logits are wanted
CONTROL = 12  # the team's counters, one cache line apart, see team.py
# --- the batch
N_ROWS = 16
N_UNITS = 17
N_OUT = 18
# --- sizes
PAGES_PER_SLOT = 20
PAGE_BYTES = 21
SCRATCH_FLOATS = 22  # per thread
SPINS = 23  # barrier polls before a thread yields its core
PROFILE = 24  # address of int64 (instructions,) cycle counts, or 0
STEP_TABLE = 25  # address of the table that `array_steps` walks,
STEP_COUNT = 26  # its instructions,
STEP_ENVIRONMENT = 27  # and the address of this environment
N_ENV = 32

PAGE = 64  # positions in a page
CHUNK = 16  # positions in the lanes of one attention step
PANEL = 8  # rows whose quantized activations are interleaved

# --- instruction fields
I_OPCODE = 0  # index into Program.opcodes
I_BARRIER = 1  # bit 0: barrier before, in one-row batches; bit 1: in larger ones
I_ADDRESS = 15  # machine address of the opcode, filled in when the Program is linked
I_WORDS = 16

# --- CONTROL, two cache lines (16 words) apart
ARRIVED = 0  # threads at the barrier
GENERATION = 16  # barriers passed
ORDER = 32  # the step's number << THREAD_BITS | threads that take part: one word, never half new
STOP = 48
STALLS = 64  # waits that were longer than SPINS polls
FIRST_COUNTER = 80  # one counter for each attention instruction
COUNTER_WORDS = 16
THREAD_BITS = 8

# --- element sizes
RECORD_BYTES = {"a8": 48, "a16": 80}  # quantized activations, see activations.py

# --- the parameter block of a context shift (int64 words), see shift.py
SHIFT_KV = 0  # address of a layer's keys and values in page 0
SHIFT_PAGE_BYTES = 1
SHIFT_OLD_PAGES = 2  # address, int64: page numbers before
SHIFT_NEW_PAGES = 3  # address, int64: page numbers after
SHIFT_HEADS = 4  # kv heads of the layer
SHIFT_ANCHOR = 5  # positions that stay where they are
SHIFT_DROPPED = 6  # positions dropped behind them
SHIFT_COMPUTED = 7  # positions that had keys and values
SHIFT_FREQUENCIES = 8  # address, float64 (rotated columns / 2,)
SHIFT_FACTORS = 9  # address of 3 * head_dim floats and 64 bytes to work in
SHIFT_ROTATED = 10  # columns of a key that are rotated, the first of its head
N_SHIFT = 11

# --- the sampler's parameter block (int64 words; floats are float64 in the same words), see sample.py
LOGITS = 0  # address, f32 (n,)
N_VOCAB = 1
WORK = 2  # address, f32 (n rounded up to 64,)
CANDIDATES = 3  # address, int32 (n,)
SEEN = 4  # address, int64: distinct tokens of prompt and answer
N_SEEN = 5
ANSWER = 6  # address, int64: distinct tokens of the answer
COUNTS = 7  # address, int64: how often each is in the answer
N_ANSWER = 8
BIAS_TOKENS = 9  # address, int64
BIAS_VALUES = 10  # address, float64
N_BIAS = 11
TOP_K = 12
SEED = 13
POSITION = 14
MASK = 15  # address, int32 words of one bit for each token that may be drawn; 0: all may
TEMPERATURE = 16
TOP_P = 17
MIN_P = 18
REPETITION = 19
PRESENCE = 20
FREQUENCY = 21
TYPICAL_P = 23  # this and what follows: see select.py
TOP_N_SIGMA = 24
XTC_PROBABILITY = 25
XTC_THRESHOLD = 26
MIROSTAT = 27  # 0, 1 or 2
MIROSTAT_MU = 28  # read and written
MIROSTAT_TAU = 29
MIROSTAT_ETA = 30
SCORES = 31  # address, f32 (n rounded up to 64,) to work in
N_PARAMETERS = 32

# --- the parameter block of repeats (int64 words), see repeats.py
REPEATS_TOKENS = 0  # address, int64 (n,)
REPEATS_N = 1
REPEATS_LIMIT = 2  # longest repetition that counts
REPEATS_ALLOWED = 3  # shortest that is told
REPEATS_LENGTHS = 4  # address, int64 (n,), written
REPEATS_FOUND = 5  # address, int64 (n,), written
N_REPEATS = 6

# --- the parameter block of log_softmax (int64 words; RANKED_HIGHEST and RANKED_SUM are float64), see log_softmax.py
RANKED_LOGITS = 0  # address, f32 (n,)
RANKED_N = 1
RANKED_TAIL = 2  # address of 16 floats to work in
RANKED_TOKENS = 3  # address, int64 (top,): the most likely tokens, the best first
RANKED_TOP = 4
RANKED_HIGHEST = 5  # written: the highest logit
RANKED_SUM = 6  # written: the sum of e^(logit - highest)
N_RANKED = 7
