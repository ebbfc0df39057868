// All metrics, and Metric, the base class for your own metrics.
#pragma once

#include <keel/layers/metrics/accuracy.h>
#include <keel/layers/metrics/class_axis.h>
#include <keel/layers/metrics/classification.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/layers/metrics/confusion/confusion.h>
#include <keel/layers/metrics/confusion/operating_point.h>
#include <keel/layers/metrics/mean.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/metrics/probabilistic.h>
#include <keel/layers/metrics/ranking.h>
#include <keel/layers/metrics/regression.h>
#include <keel/layers/metrics/segmentation.h>
