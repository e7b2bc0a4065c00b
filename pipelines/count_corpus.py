"""Count the pretokens of a corpus once, to train many tokenizers from later.

    ray job submit --address http://127.0.0.1:8265 --working-dir pipelines -- \
        python count_corpus.py s3://bucket/text/en/ --output s3://bucket/counts/en.arrow

Submit the same command again to continue after any failure.
"""

import argparse

import raybpe

parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
parser.add_argument("inputs", nargs="+", help="files, folders, globs or URIs")
parser.add_argument("--output", required=True, help="counts file to write")
parser.add_argument("--pattern", default="gpt2", help="a name of `raybpe patterns`, or a regex")
parser.add_argument("--field", default="text", help="name of the text in JSON lines and tables")
parser.add_argument("--chunk-size", default="64MB")
parser.add_argument("--no-resume", action="store_true", help="throw unfinished work away")
given = parser.parse_args()

counts = raybpe.count(
    given.inputs,
    pattern=given.pattern,
    field=given.field,
    chunk_size=given.chunk_size,
    executor="ray",
    output=given.output,
    resume=not given.no_resume,
)
print(f"{given.output}: {counts.total:,} pretokens, {len(counts):,} distinct")
