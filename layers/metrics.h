// All metrics: one header for programs.
#pragma once

#include "layers/metrics/accuracy.h"
#include "layers/metrics/auc.h"
#include "layers/metrics/confusion.h"
#include "layers/metrics/mean.h"
