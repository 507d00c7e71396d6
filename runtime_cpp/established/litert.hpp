// Compatibility: what buildGeneratorState() of sources of 2024 needs of the run time's tensor, `*out = *state`. The run
// time defines it; one that never calls buildGeneratorState() need not, so it is weak.
#ifndef DIOPI_ESTABLISHED_LITERT_H_
#define DIOPI_ESTABLISHED_LITERT_H_

#include <diopi/diopirt.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

struct diopiTensor {
    DIOPI_ATTR_WEAK diopiTensor& operator=(const diopiTensor& other);
};

#endif  // DIOPI_ESTABLISHED_LITERT_H_
