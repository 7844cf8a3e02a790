"""Tests of the plugin on a host stub; they need no WebAssembly. Run `python3 -m unittest` in the directory above."""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(_ROOT), str(_ROOT / "vendor")]
