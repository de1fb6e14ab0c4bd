"""What spark-submit is given: `kontrast report` with the arguments that follow. See docs/report.md."""

import sys

from cli.main import main

if __name__ == "__main__":
    main(["report", *sys.argv[1:]])
