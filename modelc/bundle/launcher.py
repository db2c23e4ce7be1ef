"""The program that `launch` becomes: compiled for the least processor of the target, linked against its C library."""

from __future__ import annotations

from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from modelc.bundle import record
from modelc.bundle.isas import isas_of
from modelc.bundle.kept import keep, kept
from modelc.bundle.linker import link_program, linker_command
from modelc.bundle.objects import compile_functions, processor_of
from modelc.bundle.target import Target
from modelc.errors import ModelcError
from modelc.kernels.machine_code import Processor, object_file
from modelc.kernels.objects import source_key
from modelc.settings import cache_folder

FUNCTION = "modelc.bundle.launch:launch"
SYMBOL = "modelc_launch"
# From C's calling convention to Numba's: (result*, exception**, arguments...) -> status.
_MAIN = """declare i32 @{symbol}(ptr, ptr, i64, i64)
define i32 @main(i32 %argc, ptr %argv) {{
  %result = alloca i64
  %exception = alloca ptr
  %count = zext i32 %argc to i64
  %arguments = ptrtoint ptr %argv to i64
  %status = call i32 @{symbol}(ptr %result, ptr %exception, i64 %count, i64 %arguments)
  %code = load i64, ptr %result
  %short = trunc i64 %code to i32
  ret i32 %short
}}"""


def launcher(target: Target) -> bytes:
    """The program without what it launches; built once and kept in the cache folder.

    Raises:
        NotFoundError: no linker for the target.
        ModelcError: compiling or linking failed.
    """
    folder = Path(__file__).parent
    sources = [(folder / name).read_bytes() for name in ("launch.py", "libc.py", "record.py", "emit.py")]
    versions = (metadata.version("numba"), metadata.version("llvmlite"), linker_command(target), target.zig)
    what = repr((versions, target.triple, _MAIN, sources, source_key("pointers:i64_ptr")))
    file = cache_folder() / "kernels" / "ahead" / f"launcher-{blake2b(what.encode(), digest_size=12).hexdigest()}"
    program = kept(file)
    if program is None:
        processor = processor_of(isas_of(target.machine)[0], target.triple)
        main = object_file(_MAIN.format(symbol=SYMBOL), "main", processor)
        program = link_program({"launch": _launch_object(processor), "main": main}, target, ["dl"])
        keep(file, program)
    if len(program) > record.RECORD_AT:
        raise ModelcError("the launcher is too long", expected=f"at most {record.RECORD_AT} bytes", got=len(program))
    return program


def _launch_object(processor: Processor) -> bytes:
    with TemporaryDirectory(prefix="modelc-") as folder:
        file = Path(folder, "launch.o")
        compile_functions([(FUNCTION, SYMBOL, [(processor, file)])], debug=False, note=lambda name: None)
        return file.read_bytes()
