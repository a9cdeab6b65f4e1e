"""Amounts of tokens and shares, as an operator writes them."""

import re
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

SHARE = r"^\d{1,2}(\.\d+)? ?%$"
Tokens: TypeAlias = Annotated[int, Field(ge=0)]
Share: TypeAlias = Annotated[str, Field(pattern=SHARE)]
"""A share below 100 %, such as `8%`."""


def is_amount(*others: object) -> BeforeValidator:
    """Return a check for an amount or one of `others`: it reports one mistake, not one for each kind of amount.

    YAML reads `off` as false, which is 0.
    """

    def checked(value: Any) -> Any:
        is_number = isinstance(value, int) and value is not True and value >= 0
        if value in others or is_number or (isinstance(value, str) and re.fullmatch(SHARE, value)):
            return value
        words = "".join(f", or {word}" for word in others if word is not None)
        raise ValueError(f"tokens, or a share below 100 %, are expected, such as 16384 or 8%{words}")

    return BeforeValidator(checked)


def fraction_of(amount: object) -> float | None:
    """Return the fraction that a share states, None for tokens and words.

    >>> fraction_of("8%"), fraction_of(16_384), fraction_of("dynamic")
    (0.08, None, None)
    """
    return float(amount.rstrip("% ")) / 100 if isinstance(amount, str) and re.fullmatch(SHARE, amount) else None
