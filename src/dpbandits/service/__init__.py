"""The decision service: private decisions over HTTP that survive a kill at any moment.

| file | what |
|---|---|
| `terms.py` | what an experiment declares, once and for all |
| `desk.py`, `local_desk.py` | an experiment at work: a machine that sees only its arguments |
| `sealing.py` | raw data at rest: sealed, under a key that is hashed forward |
| `tickets.py`, `clock.py` | names of rounds that nobody can make up; a time that never runs back |
| `store.py`, `migrations/` | the tables, in SQLite or PostgreSQL |
| `running.py`, `writer.py`, `recovery.py` | one thread that applies, commits, then answers |
| `ledger.py`, `views.py`, `pages.py` | what is public of it |
| `hot.py`, `app.py`, `protocol.py`, `access.py`, `refusals.py`, `metrics.py` | HTTP |
| `run.py` | all of it together, as `dpbandits serve` starts it |

docs/service.md is for those who run it, docs/architecture.md says why it is built this way.
"""
