// All losses: one header for programs.
#pragma once

#include "layers/losses/crossentropy.h"
#include "layers/losses/focal.h"
#include "layers/losses/hinge.h"
#include "layers/losses/list_mle.h"
#include "layers/losses/overlap.h"
#include "layers/losses/pairwise.h"
#include "layers/losses/probabilistic.h"
#include "layers/losses/regression.h"
#include "layers/losses/similarity.h"
