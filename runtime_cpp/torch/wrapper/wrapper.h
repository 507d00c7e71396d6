// Everything that a wrapper file includes, besides the per-operator headers of torch.
#pragma once

#include "arguments.h"
#include "context.h"
#include "control.h"
#include "dtypes.h"
#include "fast_path.h"
#include "generator_arg.h"
#include "handles.h"
#include "plain.h"
#include "registrar.h"
#include "status.h"
#include "structured.h"
#include "unusual.h"
#include "values.h"
#include "vendor_function.h"
