"""The core's tests import their own vocabulary, `znode_history`, from beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
