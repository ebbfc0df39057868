// All losses: one header for programs.
#pragma once

#include "layers/losses/crossentropy.h"
#include "layers/losses/regression.h"
