// Rules that a call brings with it, where the generated adaptor has its constants.
#pragma once

#include "adaptor/rule.h"

const diopi::adaptor::Rule& live(const char* parameter);
