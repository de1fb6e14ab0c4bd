"""`kontrast report` for spark-submit. See docs/how-to/availability-report.md."""

import sys

from cli.main import main

if __name__ == "__main__":
    main(["report", *sys.argv[1:]])
