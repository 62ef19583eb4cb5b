"""The decision service: private decisions over HTTP that survive a kill at any moment.

| file | what |
|---|---|
| `terms.py` | what an experiment declares, once and for all |
| `desk.py`, `local_desk.py` | an experiment at work: a machine that sees only its arguments |
| `sealing.py` | raw data at rest: sealed, under a key that is hashed forward |
| `tickets.py`, `clock.py` | names of rounds that nobody can make up; a time that never runs back |
| `store.py`, `migrations/` | the tables, in SQLite or PostgreSQL |
| `commands.py`, `writer.py`, `batch.py` | one thread that applies, commits, then answers |
| `running.py`, `recovery.py`, `forwarding.py` | what it holds; after a crash; what the keyring is told |
| `preparing.py`, `succession.py` | how an experiment begins; what follows one that cannot go on |
| `views.py`, `populations.py` | what is public of it |
| `entries.py`, `ledger.py`, `verification.py` | the ledger: its form, how it is written and checked |
| `pages.py`, `cards.py`, `rows.py`, `pictures.py`, `templates/` | the page |
| `service.py`, `hot.py`, `app.py` | what is asked for over HTTP |
| `access.py`, `protocol.py`, `refusals.py`, `metrics.py` | keys, limits, problems, counts |
| `run.py` | all of it together, as `dpbandits serve` starts it |

docs/service.md is for those who run it, docs/architecture.md says why it is built this way.
"""
