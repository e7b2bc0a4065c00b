"""The demo: train on real text through Ray, load the result as others would, show what came out.

    make demo                 # the Python standard library's own sources
    make demo CORPUS=path     # any text file or folder

Everything goes into ./demo. The command runs there: in the clone, workers of Ray would import the
clone's sources from their working directory instead of what is installed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

VOCAB_SIZE = 8_000
SEPARATOR = "<|endoftext|>"
FOLDER = Path("demo")
LINE = "for name in sorted(os.listdir(path)): print(f'{name:>20}')"


def standard_library(target: Path) -> Path:
    """Write the standard library's sources into one file, a separator after each."""
    with target.open("w", encoding="utf-8", newline="") as file:
        for source in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
            if "site-packages" in source.parts:
                continue
            try:
                file.write(source.read_text(encoding="utf-8") + SEPARATOR + "\n")
            except UnicodeDecodeError:
                continue  # a few of Python's own tests are in other encodings on purpose
    return target


def main() -> None:
    """Run the demo."""
    FOLDER.mkdir(exist_ok=True)
    if len(sys.argv) > 1:
        corpus = Path(sys.argv[1]).absolute()
        named = str(corpus)
    else:
        corpus = standard_library(FOLDER / "python.txt")
        named = corpus.name
    output = FOLDER / "tokenizer"
    arguments = [
        "train", named, "--vocab-size", str(VOCAB_SIZE), "--output", output.name,
        "--executor", "ray", "--no-resume",
    ]  # fmt: skip
    print(f"$ cd {FOLDER}\n$", shlex.join(["raybpe", *arguments]), flush=True)
    start = time.perf_counter()
    program = Path(sys.executable).absolute().with_name("raybpe")
    environment = {"RAY_ADDRESS": "local", **os.environ}  # a cluster here may know nothing of us
    subprocess.run([program, *arguments], check=True, cwd=FOLDER, env=environment)
    seconds = time.perf_counter() - start

    import tiktoken
    from tokenizers import Tokenizer as HuggingFace

    import raybpe

    ours = raybpe.Tokenizer.load(output)
    theirs = HuggingFace.from_file(str(output / "tokenizer.json"))
    tik = ours.to_tiktoken()
    assert isinstance(tik, tiktoken.Encoding)
    ids = ours.encode(LINE)
    verdicts = {
        "tokenizers": theirs.encode(LINE, add_special_tokens=False).ids == ids,
        "tiktoken": tik.encode(LINE, allowed_special="all") == ids,
        "decode": ours.decode(ids) == LINE,
    }
    tokens = [ours.decode_bytes([number]).decode(errors="replace") for number in ids]
    words = [t for t in ours.vocab.values() if t.decode(errors="replace").strip().isalpha()]
    longest = sorted(words, key=len, reverse=True)[:5]
    text_bytes = sum(f.stat().st_size for f in ([corpus] if corpus.is_file() else corpus.rglob("*"))
                     if f.is_file())  # fmt: skip
    rows = [
        ("text", f"{text_bytes:,} bytes"),
        ("time, Ray's start and verification included", f"{seconds:.1f} s"),
        ("tokens", f"{ours.vocab_size:,}"),
        ("first merges", "  ".join(repr((a + b).decode(errors="replace"))
                                   for a, b in ours.merges[:8])),
        ("longest words", "  ".join(repr(t.decode(errors="replace")) for t in longest)),
        ("a line", LINE),
        ("its tokens", "|".join(tokens)),
        ("bytes per token there", f"{len(LINE.encode()) / len(ids):.2f}"),
        *((f"same ids by {name}" if name != "decode" else "decodes to itself",
           "yes" if good else "NO") for name, good in verdicts.items()),
        ("files", ", ".join(sorted(path.name for path in output.iterdir() if path.is_file()))),
    ]  # fmt: skip
    width = max(len(name) for name, _ in rows)
    print()
    for name, value in rows:
        print(f"{name:<{width}}  {value}")
    if not all(verdicts.values()):
        raise SystemExit("an export does not agree")


if __name__ == "__main__":
    main()
