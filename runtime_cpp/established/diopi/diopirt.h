// Compatibility: the established diopirt.h brings <iostream>, which sources written for it use without including it, and
// once spelled a macro otherwise.
#pragma GCC system_header

#include_next <diopi/diopirt.h>  // which has a guard

#define DIOPI_ATTR_WEEK DIOPI_ATTR_WEAK

#if defined(__cplusplus)
#include <iostream>
#endif
