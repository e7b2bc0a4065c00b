"""Train a tokenizer on a cluster. Submit the same command again to continue after any failure.

    ray job submit --address http://127.0.0.1:8265 --working-dir pipelines -- \
        python train_tokenizer.py s3://bucket/text/ --output s3://bucket/tok --vocab-size 64000

The job's own folder is a copy that vanishes: give an --output that lasts.
"""

import argparse

import raybpe

parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
parser.add_argument("inputs", nargs="+", help="files, folders, globs or URIs")
parser.add_argument("--output", required=True, help="folder or URI, the same at every attempt")
parser.add_argument("--vocab-size", type=int, default=32_000)
parser.add_argument("--pattern", default="gpt2", help="a name of `raybpe patterns`, or a regex")
parser.add_argument("--special-token", action="append", help="default <|endoftext|>")
parser.add_argument("--field", default="text", help="name of the text in JSON lines and tables")
parser.add_argument("--chunk-size", default="64MB")
parser.add_argument("--no-resume", action="store_true", help="throw unfinished work away")
given = parser.parse_args()

tokenizer = raybpe.train(
    given.inputs,
    given.vocab_size,
    pattern=given.pattern,
    special_tokens=given.special_token or ["<|endoftext|>"],
    field=given.field,
    chunk_size=given.chunk_size,
    executor="ray",
    output=given.output,
    resume=not given.no_resume,
)
print(f"{given.output}: {tokenizer.vocab_size:,} tokens")
