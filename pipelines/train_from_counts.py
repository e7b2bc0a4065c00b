"""Add up counts of several corpora and train tokenizers of several sizes from the sum.

    ray job submit --address http://127.0.0.1:8265 --working-dir pipelines -- \
        python train_from_counts.py s3://bucket/counts/en.arrow s3://bucket/counts/de.arrow \
        --output s3://bucket/tokenizers --vocab-size 32000 --vocab-size 64000
"""

import argparse

import raybpe

parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
parser.add_argument("counts", nargs="+", help="files that count_corpus.py wrote")
parser.add_argument("--output", required=True, help="folder or URI; one folder per size inside")
parser.add_argument("--vocab-size", type=int, action="append", help="repeatable, default 32000")
given = parser.parse_args()

total = raybpe.Counts.sum([raybpe.Counts.load(path) for path in given.counts])
for size in given.vocab_size or [32_000]:
    output = f"{given.output.rstrip('/')}/{size}"
    tokenizer = raybpe.train_from_counts(total, size, executor="ray", output=output)
    print(f"{output}: {tokenizer.vocab_size:,} tokens")
