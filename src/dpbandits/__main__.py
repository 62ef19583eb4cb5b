"""``python -m dpbandits`` is the command line."""

from dpbandits_command import main

if __name__ == "__main__":
    main()
