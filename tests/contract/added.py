"""The functions of operators that stand in our headers and not in the established contract's."""

OPERATORS = (
    "diopiForeachAddList",
    "diopiForeachAddcdiv",
    "diopiForeachAddcmul",
    "diopiForeachDiv",
    "diopiForeachDivList",
    "diopiForeachLerp",
    "diopiForeachMulList",
    "diopiForeachSqrt",
    "diopiFusedAdam",
    "diopiFusedSgd",
)
