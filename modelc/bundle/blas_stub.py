"""A library in the place of NumPy's OpenBLAS, which takes 25 MB and which nothing in modelc calls.

modelc computes without BLAS, whose bits change with the processor; NumPy's modules still want its functions to be
there when they are loaded, and NumPy tries one of them, the dot product of two floats. A call of another, which would
be a fault of modelc's, says so and ends the process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from modelc.bundle.elf import undefined_symbols
from modelc.bundle.linker import link
from modelc.bundle.target import Target

_OPENBLAS = re.compile(r"numpy\.libs/(lib\w*openblas[^/]*\.so[^/]*)")
_ONLY_FOR_OPENBLAS = re.compile(r"numpy\.libs/lib(gfortran|quadmath)[^/]*\.so[^/]*")
_SYMBOL = re.compile(r"scipy_\w+")
_TRIED = re.compile(r"\w*cblas_sdot\d*_?")
_DOT = """define float @{symbol}(i64 %n, ptr %x, i64 %step_x, ptr %y, i64 %step_y) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %body]
  %sum = phi float [0.0, %entry], [%added, %body]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %at_x = mul i64 %i, %step_x
  %at_y = mul i64 %i, %step_y
  %from_x = getelementptr float, ptr %x, i64 %at_x
  %from_y = getelementptr float, ptr %y, i64 %at_y
  %value_x = load float, ptr %from_x
  %value_y = load float, ptr %from_y
  %product = fmul float %value_x, %value_y
  %added = fadd float %sum, %product
  %next = add i64 %i, 1
  br label %loop
end:
  ret float %sum
}}"""
_MESSAGE = b"modelc: NumPy called BLAS, which a compiled file does not have; report it\n"


def without_openblas(files: Mapping[str, bytes], target: Target) -> dict[str, bytes]:
    """The same files with a stub for OpenBLAS, and without what only OpenBLAS needs; as they are where there is none.

    Raises:
        NotFoundError: no linker for the target.
    """
    name = next((name for name in files if _OPENBLAS.fullmatch(name)), None)
    if name is None or target.system != "linux":
        return dict(files)
    users = [content for path, content in files.items() if path.startswith("numpy/") and path.endswith(".so")]
    wanted = {symbol for library in users for symbol in undefined_symbols(library) if _SYMBOL.fullmatch(symbol)}
    kept = {path: content for path, content in files.items() if not _ONLY_FOR_OPENBLAS.fullmatch(path)}
    soname = name.rpartition("/")[2]
    stub = link({"stub": _object(sorted(wanted), target)}, target, soname, allowed={"write", "abort"})
    return kept | {name: stub}


def _object(symbols: list[str], target: Target) -> bytes:
    import llvmlite.binding as llvm

    length = len(_MESSAGE)
    text = "".join(f"\\{byte:02x}" for byte in _MESSAGE)
    code = [
        f'target triple = "{target.triple}"',
        f'@message = private constant [{length} x i8] c"{text}"',
        "declare i64 @write(i32, ptr, i64)",
        "declare void @abort() noreturn",
        "define internal void @refuse() {",
        f"  %written = call i64 @write(i32 2, ptr @message, i64 {length})",
        "  call void @abort()",
        "  unreachable",
        "}",
    ]
    for symbol in symbols:
        refusal = f"define void @{symbol}() {{\n  call void @refuse()\n  unreachable\n}}"
        code.append(_DOT.format(symbol=symbol) if _TRIED.fullmatch(symbol) else refusal)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(target.triple).create_target_machine(reloc="pic", codemodel="default")
    made: bytes = machine.emit_object(llvm.parse_assembly("\n".join(code)))
    return made
