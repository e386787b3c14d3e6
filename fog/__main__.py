"""`python -m fog` is the `fog` command."""

import sys

from fog.cli import main

sys.exit(main())
