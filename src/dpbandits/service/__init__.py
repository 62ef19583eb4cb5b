"""The decision service: private decisions over HTTP."""
