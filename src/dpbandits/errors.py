"""Every error this package raises on purpose, as one tree.

```
DPBanditsError
├── InvalidInput            an argument that cannot be right; says which and why
│   └── UnknownName         no policy, figure, … of that name; suggests the nearest
├── RoundError              `select` and `update` called in an order that makes no sense
│   └── TooLate             a reward after its round was closed: normal where answers come late
├── PrivacyError            something that would weaken or misstate a guarantee
│   ├── BudgetNotAccepted   this policy cannot deliver that kind of budget
│   ├── BudgetExhausted     a release would pass the limit
│   ├── NotImplied          one privacy definition does not imply the other
│   ├── NotComparable       two guarantees about different things
│   └── HorizonReached      the guarantee ends here, so decisions end here
├── SaveFileError           a saved learner or trace that cannot be read safely
├── SweepError              a sweep that cannot go on; says why, and what is finished is kept
├── ServiceError            the service cannot start or go on safely; says what to do
├── LedgerError             a service's ledger that does not hold together; says where
├── MissingExtra            a package that comes with an extra is not installed; says which
├── ConformanceError        `testing.check_policy` or `check_environment` found a broken promise
└── AuditError              an audit could not run, or its control was not caught
```

Each carries one sentence a user can act on. Nothing is changed by a call that raises.

Warnings are `UnusableFeatures` (the round took place, without them), `ShortenedFeatures` (many rows are
beyond what was declared), `LooseBound` (nearly all are far within it) and `FittedOnData` (something that
will be public was made of data).
"""

import warnings


class DPBanditsError(Exception):
    """Base of every error of this package."""


class InvalidInput(DPBanditsError, ValueError):
    """An argument that cannot be right."""


class UnusableFeatures(UserWarning):
    """Features with nan or infinity: the person was given an action at random, and her round counts.

    If she were refused instead, every round after hers would move up by one, and with it what is
    released when: that would give her away. The warning is for whoever serves her, not to be published.
    """


class ShortenedFeatures(UserWarning):
    """Many rows of features are beyond the declared bounds, and were shortened or cut off to them.

    Said once. Privacy is not at stake, but much of what could be learned is: rows that are shortened to
    one length differ by direction only. How many they are is raw data, so the warning does not say it;
    it is for whoever runs the learner, not to be published.
    """


class LooseBound(UserWarning):
    """Nearly all rows of features are shorter than half of the bound that was declared for them.

    Said once. Privacy is not at stake, but noise is made for rows as long as the bound, so a loose one
    costs as much as a smaller budget. How many they are is raw data, so the warning does not say it; it
    is for whoever runs the learner, not to be published.
    """


class FittedOnData(UserWarning):
    """A declaration, which is public, was taken from data: no guarantee covers what it gives away."""


# Every time, unless the application says otherwise: Python would show it once for a line of code.
warnings.filterwarnings("always", category=UnusableFeatures, append=True)


class UnknownName(InvalidInput):
    """A name nobody knows; the message suggests the nearest one."""


class RoundError(DPBanditsError):
    """`select`, `update` and `skip` called in an order that makes no sense."""


class TooLate(RoundError):
    """A reward that arrived after its round was closed; it is not learned from."""


class PrivacyError(DPBanditsError):
    """Something that would weaken or misstate a guarantee."""


class BudgetNotAccepted(PrivacyError, ValueError):
    """This policy cannot deliver that kind or size of budget."""


class BudgetExhausted(PrivacyError):
    """A release would pass the limit; it was not made."""

    def __init__(self, *, spent: object, asked: object, limit: object) -> None:
        self.spent, self.asked, self.limit = spent, asked, limit
        super().__init__(f"spending {asked} on top of {spent} would pass the limit {limit}")


class NotImplied(PrivacyError):
    """One privacy definition does not imply the other."""


class NotComparable(PrivacyError):
    """Two guarantees that protect different things have no order."""


class HorizonReached(PrivacyError):
    """The guarantee was stated up to a horizon, and the horizon is reached."""


class SaveFileError(DPBanditsError):
    """A save file that is missing, damaged, newer than this version or already continued."""


class SweepError(DPBanditsError):
    """A sweep cannot go on; what is finished is kept, and the same command resumes there."""


class ServiceError(DPBanditsError):
    """The service cannot start, or cannot go on without risking what it promised."""


class LedgerError(DPBanditsError):
    """A ledger that was changed, is incomplete, or says what cannot be."""


class MissingExtra(DPBanditsError, ImportError):
    """A package that comes with an extra of this one is not installed."""

    def __init__(self, *, extra: str, package: str) -> None:
        self.extra, self.package = extra, package
        super().__init__(f"this needs {package}: pip install 'dpbandits[{extra}]'")


class ConformanceError(DPBanditsError, AssertionError):
    """A policy or a world breaks a promise that all of its kind make."""


class AuditError(DPBanditsError, AssertionError):
    """An audit could not run, or a control that must be caught was not."""
