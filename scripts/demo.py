"""The demo: train on real text through Ray, load the result as others would, show what came out.

    make demo                 # the Python standard library's own sources
    make demo CORPUS=path     # any text file or folder

Everything goes into ./demo.
"""

from __future__ import annotations

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
    corpus = Path(sys.argv[1]) if len(sys.argv) > 1 else standard_library(FOLDER / "python.txt")
    output = FOLDER / "tokenizer"
    command = [
        str(Path(sys.executable).with_name("raybpe")), "train", str(corpus),
        "--vocab-size", str(VOCAB_SIZE), "--output", str(output), "--executor", "ray",
        "--no-resume",
    ]  # fmt: skip
    print("$", " ".join(["raybpe", *command[1:]]), flush=True)
    start = time.perf_counter()
    subprocess.run(command, check=True)
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
    longest = sorted(ours.vocab.values(), key=len)[-3:]
    text_bytes = sum(f.stat().st_size for f in ([corpus] if corpus.is_file() else corpus.rglob("*"))
                     if f.is_file())  # fmt: skip
    rows = [
        ("text", f"{text_bytes:,} bytes"),
        ("time, Ray's start and verification included", f"{seconds:.1f} s"),
        ("tokens", f"{ours.vocab_size:,}"),
        ("first merges", "  ".join(repr((a + b).decode(errors="replace"))
                                   for a, b in ours.merges[:8])),
        ("longest tokens", "  ".join(repr(t.decode(errors="replace")) for t in longest)),
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
