"""The key of an asker.

`key.py new` prints a new identity and its recipient, one a line. `key.py open IDENTITY` decrypts the armoured file on its
standard input.
"""

import sys

from pyrage import decrypt, x25519


def main() -> None:
    match sys.argv[1:]:
        case ["new"]:
            identity = x25519.Identity.generate()
            print(identity, identity.to_public(), sep="\n")
        case ["open", identity]:
            key = x25519.Identity.from_str(identity)
            sys.stdout.buffer.write(decrypt(sys.stdin.buffer.read(), [key]))
        case _:
            sys.exit(__doc__)


main()
