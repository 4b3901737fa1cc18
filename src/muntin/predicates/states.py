"""What a condition can come to for a row: false, true, NULL, or failed.

Tables over these states say what operators make of them. Spark evaluates AND, OR and CASE from
the left and stops once the result is known, so an operand behind that point cannot fail.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.uint8]

FALSE, TRUE, NULL, FAILED = range(4)

NOT = (TRUE, FALSE, NULL, FAILED)
IS_NULL = (FALSE, FALSE, TRUE, FAILED)
IS_TRUE = (FALSE, TRUE, FALSE, FAILED)
IS_FALSE = (TRUE, FALSE, FALSE, FAILED)

# What is known so far, down; the next operand, across.
AND = np.array(
    [
        [FALSE, FALSE, FALSE, FALSE],
        [FALSE, TRUE, NULL, FAILED],
        [FALSE, NULL, NULL, FAILED],
        [FAILED, FAILED, FAILED, FAILED],
    ],
    np.uint8,
)
OR = np.array(
    [
        [FALSE, TRUE, NULL, FAILED],
        [TRUE, TRUE, TRUE, TRUE],
        [NULL, TRUE, NULL, FAILED],
        [FAILED, FAILED, FAILED, FAILED],
    ],
    np.uint8,
)


def chosen(condition: States, then: States, otherwise: States) -> States:
    """CASE WHEN condition THEN then ELSE otherwise END.

    >>> states = np.array([FALSE, TRUE, NULL, FAILED], np.uint8)
    >>> chosen(states, np.uint8(TRUE), np.uint8(FALSE)).tolist()
    [0, 1, 0, 3]
    """
    result: States = np.where(condition == TRUE, then, otherwise)
    return np.where(condition == FAILED, np.uint8(FAILED), result)
