typedef enum {
    ReductionNone,
    ReductionSum,
    ReductionMean,
    ReductionEND
} diopiReduction_t;

typedef enum { RoundModeNone, RoundModeTrunc, RoundModeFloor, RoundModeCeil, RoundModeEND } diopiRoundMode_t;
