"""What a running Program sees: the slots of the environment block E and the fixed fields of an instruction I.

Both are arrays of int64. E holds base addresses and the numbers of the current batch; I holds 16 numbers of which opcodes
define 2 to 13 for themselves. One block per engine, one table per Program.
"""

from __future__ import annotations

# --- base addresses
WEIGHTS = 0  # the mapped .modelc file
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
N_ENV = 32

PAGE = 64  # positions in a page
CHUNK = 16  # positions in the lanes of one attention step
PANEL = 8  # rows whose quantized activations are interleaved

# --- instruction fields
I_OPCODE = 0  # index into Program.opcodes
I_BARRIER = 1  # bit 0: barrier before, in one-row batches; bit 1: in larger ones
I_ADDRESS = 15  # machine address of the opcode, filled in when the Program is linked
I_WORDS = 16
