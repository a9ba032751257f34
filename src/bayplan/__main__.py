"""`python -m bayplan` is `bayplan`."""

import sys

from bayplan.cli.main import main

sys.exit(main())
