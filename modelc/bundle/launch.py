"""The program at the beginning of an executable: it loads Python out of its own file and hands over to it.

Written like a kernel and compiled by Numba, with the C library for everything that touches the system; addresses are
int64. What it reads from the file is checked before it is used (see `record`), so that a file that is damaged or cut
off ends with one line.
"""

from __future__ import annotations

from numba import types

from modelc.bundle.libc import (
    MAP_PRIVATE,
    MAP_PRIVATE_POPULATE,
    MFD_CLOEXEC,
    O_RDONLY_CLOEXEC,
    O_RDWR,
    PROT_READ,
    RTLD_NOW,
    RTLD_NOW_GLOBAL,
    SEEK_END,
    STDERR,
    c_text,
    call,
    close,
    constant,
    dlerror,
    dlopen,
    dlsym,
    getenv,
    glibc_version,
    lseek,
    malloc,
    mmap,
    munmap,
    open_file,
    strlen,
    word_at,
    write,
)
from modelc.bundle.record import (
    MAGIC,
    MAX_LIBRARIES,
    R_FILE_BYTES,
    R_GLIBC,
    R_HEAD_SUMS,
    R_LIBRARIES,
    R_LIBRARY,
    R_MAGIC,
    R_PLAIN_AT,
    R_PLAIN_BYTES,
    R_PLAIN_SUMS,
    R_SUMS,
    RECORD_AT,
    WORDS,
)
from modelc.formats.modelc.compiled import START
from modelc.kernels.jit import kernel
from modelc.kernels.pointers import i64_ptr, u8_ptr

__all__ = ["SIGNATURE", "launch"]

SIGNATURE = (types.int64, types.int64)

FAILED = 1
NAME_BYTES = 64  # room for `/proc/self/fd/` and a number
MORE_ARGUMENTS = 6  # that Python gets: what stands in front of the user's, and a null behind them

_null_file = c_text("/dev/null")
_own_file = c_text("/proc/self/exe")
_own_file_wide = constant("/proc/self/exe\0".encode("utf-32-le"))
_descriptors = c_text("/proc/self/fd/")
_python_name = c_text("python")
_memfd_create_name = c_text("memfd_create")
_set_home_name = c_text("Py_SetPythonHome")
_main_name = c_text("Py_BytesMain")
_isolated = c_text("-IS")
_isolated_unbuffered = c_text("-ISu")
_unbuffered_name = c_text("PYTHONUNBUFFERED")
_option_x = c_text("-X")
_utf8 = c_text("utf8")
_modelc = c_text("modelc: ")
_colon = c_text(": ")
_line_end = c_text("\n")
_not_mounted = c_text("/proc/self/exe cannot be opened: mount /proc")
_damaged = c_text("the file is damaged or not complete: copy it again")
_no_memory = c_text("not enough memory, or the system gives no files in memory (memfd_create)")
_not_python = c_text("Py_SetPythonHome or Py_BytesMain is missing: compile the model again")
_built_for = c_text("built for glibc 2.")
_this_has = c_text(" or newer, this system has ")


@kernel
def _say(text):
    write(STDERR, text, strlen(text))


@kernel
def _fail(program, text):
    """One line on the standard error; the exit code."""
    _say(_modelc())
    _say(program)
    _say(_colon())
    _say(text)
    _say(_line_end())
    return FAILED


@kernel
def _put_number(text, number):
    """Write the digits of `number`, which is not negative, and a zero byte to the address `text`."""
    digits = 1
    power = 10
    while number >= power:
        digits += 1
        power *= 10
    out = u8_ptr(text)
    out[digits] = 0
    for place in range(digits - 1, -1, -1):
        out[place] = 48 + number % 10
        number //= 10


@kernel
def _minor_version(text):
    """What stands behind the first point of a version like `2.36`."""
    read = u8_ptr(text)
    at = 0
    while read[at] != 0 and read[at] != 46:
        at += 1
    number = 0
    if read[at] != 0:
        at += 1
        while 48 <= read[at] <= 57:
            number = 10 * number + read[at] - 48
            at += 1
    return number


@kernel
def _is_sound(address, n_words, expected):
    """Whether the words from `address` on have the two sums that stand at `expected` (see `record.sums`)."""
    first = 0
    second = 0
    for number in range(n_words):
        first += word_at(address + 8 * number)
        second += first
    return first == expected[0] and second == expected[1]


@kernel
def _is_inside(start, length, low, high):
    """Whether a part of the file lies between two others, whatever its numbers are."""
    return low <= start <= high and 0 < length <= high - start


@kernel
def _loaded(content, length, mode, name):
    """Load a shared library that lies in memory: its handle; 0 with the reason in `dlerror`, -1 without memory.

    The file in memory stays open: the loader knows libraries by their names, and a number that is used again would
    stand for the first library that had it.
    """
    create = dlsym(0, _memfd_create_name())
    if create == 0:
        return -1
    file = call(create, _python_name(), MFD_CLOEXEC)
    if file < 0:
        return -1
    while length > 0:
        written = write(file, content, length)
        if written <= 0:
            return -1
        content += written
        length -= written
    out = u8_ptr(name)
    prefix = u8_ptr(_descriptors())
    prefix_bytes = strlen(_descriptors())
    for at in range(prefix_bytes):
        out[at] = prefix[at]
    _put_number(name + prefix_bytes, file)
    return dlopen(name, mode)


@kernel
def _open_standard_streams():
    """Let those that are closed lead nowhere, or the next file to be opened would have their number."""
    file = open_file(_null_file(), O_RDWR)
    while 0 <= file <= STDERR:
        file = open_file(_null_file(), O_RDWR)
    if file > STDERR:
        close(file)


@kernel
def _run_python(python, program, argc, argv):
    """Python's own main program with this file as its library, and as the archive to run."""
    set_home = dlsym(python, _set_home_name())
    main = dlsym(python, _main_name())
    arguments = malloc(8 * (argc + MORE_ARGUMENTS))
    if set_home == 0 or main == 0:
        return _fail(program, _not_python())
    if arguments == 0:
        return _fail(program, _no_memory())
    unbuffered = getenv(_unbuffered_name())
    is_unbuffered = unbuffered != 0 and u8_ptr(unbuffered)[0] != 0
    out = i64_ptr(arguments)
    given = i64_ptr(argv)
    out[0] = program
    out[1] = _isolated_unbuffered() if is_unbuffered else _isolated()
    out[2] = _option_x()
    out[3] = _utf8()
    out[4] = _own_file()
    count = 5
    for number in range(1, argc):
        out[count] = given[number]
        count += 1
    out[count] = 0
    call(set_home, _own_file_wide(), 0)
    return call(main, count, arguments)


@kernel
def launch(argc, argv):
    """Run the file as the program that it is; returns the exit code.

    Args:
        argc: number of arguments, its own name among them.
        argv: address of the addresses of their texts.
    """
    program = i64_ptr(argv)[0] if argc > 0 else _own_file()
    _open_standard_streams()
    file = open_file(_own_file(), O_RDONLY_CLOEXEC)
    if file < 0:
        return _fail(program, _not_mounted())
    size = lseek(file, 0, SEEK_END)
    if size < START:
        return _fail(program, _damaged())
    head = mmap(0, START, PROT_READ, MAP_PRIVATE, file, 0)
    if head == -1:
        return _fail(program, _no_memory())
    at = head + RECORD_AT
    record = i64_ptr(at)
    if (
        record[R_MAGIC] != MAGIC
        or not _is_sound(at + 8 * R_FILE_BYTES, WORDS - R_FILE_BYTES, i64_ptr(at + 8 * R_SUMS))
        or record[R_FILE_BYTES] != size
        or not _is_sound(head, RECORD_AT // 8, i64_ptr(at + 8 * R_HEAD_SUMS))
        or not _is_inside(record[R_PLAIN_AT], record[R_PLAIN_BYTES], START, size)
        or not 0 < record[R_LIBRARIES] <= MAX_LIBRARIES
    ):
        return _fail(program, _damaged())

    name = malloc(NAME_BYTES)
    if name == 0:
        return _fail(program, _no_memory())
    if _minor_version(glibc_version()) < record[R_GLIBC]:
        _put_number(name, record[R_GLIBC])
        _say(_modelc())
        _say(_built_for())
        _say(name)
        _say(_this_has())
        _say(glibc_version())
        _say(_line_end())
        return FAILED

    plain_at = record[R_PLAIN_AT]
    plain_end = plain_at + record[R_PLAIN_BYTES]
    mapped_at = plain_at // START * START  # a multiple of every system's page
    mapped = mmap(0, plain_end - mapped_at, PROT_READ, MAP_PRIVATE_POPULATE, file, mapped_at)
    if mapped == -1:
        return _fail(program, _no_memory())
    words = record[R_PLAIN_BYTES] // 8
    if not _is_sound(mapped + plain_at - mapped_at, words, i64_ptr(at + 8 * R_PLAIN_SUMS)):
        return _fail(program, _damaged())

    python = 0
    last = record[R_LIBRARIES] - 1
    for number in range(last + 1):
        start = record[R_LIBRARY + 2 * number]
        length = record[R_LIBRARY + 2 * number + 1]
        if not _is_inside(start, length, plain_at, plain_end):
            return _fail(program, _damaged())
        mode = RTLD_NOW_GLOBAL if number == last else RTLD_NOW
        python = _loaded(mapped + start - mapped_at, length, mode, name)
        if python == -1:
            return _fail(program, _no_memory())
        if python == 0:
            return _fail(program, dlerror())
    munmap(mapped, plain_end - mapped_at)
    munmap(head, START)
    close(file)
    return _run_python(python, program, argc, argv)
