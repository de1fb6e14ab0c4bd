"""What spark-submit is given: `kontrast stream` with the arguments that follow. See docs/deployment.md."""

import sys

from cli.main import main

if __name__ == "__main__":
    main(["stream", *sys.argv[1:]])
