#pragma once

// Distributed gradient computation for C++ programs on LibTorch. This one header is what a program includes.

#include "tutti/comm/exception.h"
#include "tutti/comm/group.h"
#include "tutti/comm/mesh.h"
#include "tutti/comm/reproducible_sum.h"
#include "tutti/comm/world.h"
#include "tutti/gradient/average.h"
#include "tutti/gradient/batch_norm.h"
#include "tutti/gradient/clip.h"
#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/hook.h"
#include "tutti/gradient/noise_scale.h"
#include "tutti/gradient/step_ahead.h"
#include "tutti/optim/lamb.h"
#include "tutti/optim/lars.h"
#include "tutti/optim/learning_rate.h"
#include "tutti/optim/loss_scale.h"
#include "tutti/optim/master_weights.h"
#include "tutti/verify/guard.h"
#include "tutti/verify/verify.h"
#include "tutti/version.h"
