"""A small QEMU machine with Debian's kernel that runs tests of this checkout on control groups of version 2."""
