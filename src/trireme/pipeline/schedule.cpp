#include "trireme/pipeline/schedule.h"
