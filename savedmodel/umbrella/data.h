// Input data: datasets, and readers of CSV and TFRecord files.
#pragma once

#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/dataset.h>
#include <keel/framework/data/tfrecord.h>
