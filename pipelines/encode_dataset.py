"""Encode a data set into token shards with a trained tokenizer.

    ray job submit --address http://127.0.0.1:8265 --working-dir pipelines -- \
        python encode_dataset.py s3://bucket/tokenizer s3://bucket/text/ --output s3://bucket/tokens

Submit the same command again to continue after any failure.
"""

import argparse
import subprocess
import sys

parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
parser.add_argument("tokenizer", help="folder or URI of a trained tokenizer")
parser.add_argument("inputs", nargs="+", help="files, folders, globs or URIs")
parser.add_argument("--output", required=True, help="folder or URI for the shards")
parser.add_argument("--format", default="npy", choices=["npy", "bin", "parquet"])
parser.add_argument("--field", default="text", help="name of the text in JSON lines and tables")
parser.add_argument("--no-resume", action="store_true", help="throw unfinished work away")
given = parser.parse_args()

command = [sys.executable, "-m", "raybpe", "encode", given.tokenizer, *given.inputs]
command += ["--output", given.output, "--format", given.format, "--field", given.field]
command += ["--no-resume"] if given.no_resume else []
sys.exit(subprocess.run([*command, "--executor", "ray"], check=False).returncode)
