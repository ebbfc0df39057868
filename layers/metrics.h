// All metrics: one header for programs.
#pragma once

#include "layers/metrics/accuracy.h"
#include "layers/metrics/auc.h"
#include "layers/metrics/calibration.h"
#include "layers/metrics/confusion.h"
#include "layers/metrics/correlation.h"
#include "layers/metrics/crossentropy.h"
#include "layers/metrics/exact_auc.h"
#include "layers/metrics/f_score.h"
#include "layers/metrics/hinge.h"
#include "layers/metrics/mean.h"
#include "layers/metrics/operating_point.h"
#include "layers/metrics/probabilistic.h"
#include "layers/metrics/r2_score.h"
#include "layers/metrics/ranking.h"
#include "layers/metrics/regression.h"
