// All callbacks of this folder: one header for programs.
#pragma once

#include "layers/training/csv_logger.h"
#include "layers/training/early_stopping.h"
#include "layers/training/lambda_callback.h"
#include "layers/training/learning_rate_scheduler.h"
#include "layers/training/progbar_logger.h"
