#pragma once

// Distributed gradient computation for C++ programs on LibTorch. This one header is what a program includes.

#include "tutti/comm/exception.h"
#include "tutti/comm/group.h"
#include "tutti/comm/mesh.h"
#include "tutti/comm/reproducible_sum.h"
#include "tutti/comm/world.h"
#include "tutti/gradient/average.h"
#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/hook.h"
#include "tutti/verify/guard.h"
#include "tutti/verify/verify.h"
#include "tutti/version.h"
