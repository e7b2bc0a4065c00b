"""`raybpe inspect`, `compare` and `export`: look at tokenizers, and hand them on."""

from __future__ import annotations

from typing import Annotated

import typer

from raybpe.errors import UsageError

TokenizerPath = Annotated[
    str,
    typer.Argument(
        metavar="TOKENIZER",
        help="A folder, tokenizer.json, .tiktoken, or vocab.json beside merges.txt.",
        show_default=False,
    ),
]
SHOWN = 10  # examples of each fault


def inspect(
    tokenizer: TokenizerPath,
    longest: Annotated[
        int, typer.Option(metavar="N", help="How many of the longest tokens to show.")
    ] = 20,
    listing: Annotated[
        bool, typer.Option("--list", help="List every token instead: id and text.")
    ] = False,
) -> None:
    """Show what is in a tokenizer, and what is wrong with it."""
    from raybpe.cli.show import table
    from raybpe.evaluate.audit import audit
    from raybpe.quoted import readable, shortened
    from raybpe.tokenizer.tokenizer import Tokenizer

    loaded = Tokenizer.load(tokenizer)
    vocab = loaded.vocab
    if listing:
        for number, token in vocab.items():
            typer.echo(f"{number}\t{readable(token)}")
        return
    found = audit(loaded, longest)

    def some(ids: list[int]) -> str:
        return f"{len(ids):,}  {_examples(ids, vocab)}" if ids else "none"

    gaps = " ".join(map(str, found.missing_ids[:SHOWN]))
    twice = [number for ids in found.duplicates.values() for number in ids]
    number_of_bytes = sum(length * number for length, number in found.lengths.items())
    mean = number_of_bytes / max(1, sum(found.lengths.values()))
    rows = [
        ("ids", f"{found.ids:,}"),
        ("merges", f"{found.merges:,}"),
        ("fingerprint", found.fingerprint),
        ("pattern", loaded.pattern.name or loaded.pattern.regex),
        ("special tokens", " ".join(f"{i}:{text}" for text, i in found.special_tokens.items())
         or "none"),
        ("bytes per token", f"{mean:.2f} mean, {max(found.lengths, default=0)} longest"),
        ("unreachable tokens", some(found.unreachable)),
        ("bytes with several ids", some(twice)),
        ("missing ids", f"{len(found.missing_ids):,}  {gaps}" if gaps else "none"),
        ("special text in tokens", some(found.special_inside)),
        ("llama.cpp pattern", found.llama_cpp or "none by that name: llama.cpp cannot run it"),
    ]  # fmt: skip
    typer.echo(table(rows))
    typer.echo("\ntokens by script")
    typer.echo(table(((name, f"{number:,}") for name, number in found.scripts.items()), right=(1,)))
    if found.longest:
        typer.echo("\nlongest tokens")
        typer.echo(
            table(((str(number), shortened(vocab[number])) for number in found.longest), right=(0,))
        )


def compare(
    left: TokenizerPath,
    right: TokenizerPath,
) -> None:
    """Show in what two tokenizers differ, by content."""
    from raybpe.cli.show import table
    from raybpe.evaluate.compare import compare as compare_tokenizers
    from raybpe.quoted import readable
    from raybpe.tokenizer.tokenizer import Tokenizer

    one, other = Tokenizer.load(left), Tokenizer.load(right)
    found = compare_tokenizers(one, other)
    if found.same:
        typer.echo(f"the same: {one.vocab_size:,} ids, {len(one.merges):,} merges")
        return
    rank = found.first_difference
    merges = f"{found.merges[0]:,} and {found.merges[1]:,}"
    if rank is not None:
        a, b = one.merges[rank], other.merges[rank]
        merges += (
            f"; the first {rank:,} are the same, then {readable(a[0])} {readable(a[1])} "
            f"against {readable(b[0])} {readable(b[1])}"
        )

    def some(ids: list[int], vocab: dict[int, bytes]) -> str:
        return f"{len(ids):,}  " + " ".join(readable(vocab[number]) for number in ids[:SHOWN])

    moved = " ".join(f"{a}/{b}:{readable(one.vocab[a])}" for a, b in found.other_ids[:SHOWN])
    rows = [
        ("pattern", "the same" if found.same_pattern
         else f"{one.pattern.name or one.pattern.regex} against "
              f"{other.pattern.name or other.pattern.regex}"),
        ("tokens in both", f"{found.shared:,}"),
        ("only in the first", some(found.only_left, one.vocab)),
        ("only in the second", some(found.only_right, other.vocab)),
        ("other ids", f"{len(found.other_ids):,}  {moved}"),
        ("merges", merges),
        ("special tokens", "the same" if not found.special_tokens
         else " ".join(f"{text}:{a}/{b}" for text, (a, b) in found.special_tokens.items())),
    ]  # fmt: skip
    typer.echo(table(rows))


def export(
    tokenizer: TokenizerPath,
    format: Annotated[
        str,
        typer.Option(
            metavar="hf|transformers|tiktoken|gpt2|cs336", help="What to write.", show_default=False
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="PATH", help="Where.", show_default=False)
    ],
) -> None:
    """Write a tokenizer in another format, load it back and compare."""
    from raybpe.evaluate.reachable import unreachable_tokens
    from raybpe.formats import EXPORTS, export_tokenizer
    from raybpe.tokenizer.tokenizer import Tokenizer

    if format not in EXPORTS:
        raise UsageError(f"--format {format!r} is not one of {', '.join(EXPORTS)}")
    loaded = Tokenizer.load(tokenizer)
    for path in export_tokenizer(loaded, format, output):
        typer.echo(path)
    unreachable = unreachable_tokens(loaded.vocabulary)
    if unreachable:
        typer.echo(
            f"{len(unreachable):,} tokens are never made by the merges: "
            f"{_examples(unreachable, loaded.vocab)}",
            err=True,
        )


def _examples(ids: list[int], vocab: dict[int, bytes]) -> str:
    from raybpe.quoted import shortened

    return " ".join(f"{number}:{shortened(vocab[number])}" for number in ids[:SHOWN])
