"""`kontrast stream` for spark-submit. See docs/how-to/spark-cluster.md."""

import sys

from cli.main import main

if __name__ == "__main__":
    main(["stream", *sys.argv[1:]])
