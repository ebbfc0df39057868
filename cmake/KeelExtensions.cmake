# The libraries that hold what most programs do not need. A program that does not link them builds in
# less time; keel::keel contains all of them.
#   keel_catalog   families of Keras that few recommenders use, and what only they compute with
#   keel_compat    the interfaces of other packages and of earlier versions, on the same tables
#   keel_serving   the model server
# Each list has regular expressions of the paths of sources; the library of the folder gets the rest.
# Layers of keel_catalog and keel_compat register themselves when they are linked.
set(KEEL_EXTENSIONS catalog compat serving)
set(KEEL_SOURCES_catalog
  framework/kernels/convolution/
  framework/kernels/linalg/
  autodiff/keras_ops/internal/resample
  "autodiff/keras_ops/(comparison|core|creation|elementwise|image|linalg|products|reductions|signal|sorting|transforms)\\.cc"
  "autodiff/ops/(attention|convolution|pooling|resize)\\.cc"
  layers/attention/[a-hj-z]
  layers/attention/internal/head
  "layers/(audio|convolution|image|keras_ops|pooling|recurrent|retrieval|visualization|wrappers)/"
  "layers/callbacks/(tensorboard\\.cc|internal/(event_file|png)\\.cc)"
  layers/catalog_layers.cc
  "layers/functional/internal/(array_operators|functional_operators|math_operators|nn_operators|operator_arguments|operator_functions|operator_layer|tensorflow_nodes)\\.cc"
  layers/regularization/spatial_dropout
  layers/reshaping/up_sampling.cc
  "layers/utils/(arrays|datasets)\\.cc")
set(KEEL_SOURCES_compat
  layers/compat_layers.cc
  "layers/embedding/(distributed|mid_level|v1)/"
  layers/feature_columns/
  savedmodel/estimator/
  savedmodel/id_limit_files.cc)
set(KEEL_SOURCES_serving savedmodel/serving/)

# keel_extension_regex(<variable> <extension>...): the expression for the sources of the extensions.
function(keel_extension_regex variable)
  set(all)
  foreach(extension ${ARGN})
    list(APPEND all ${KEEL_SOURCES_${extension}})
  endforeach()
  list(JOIN all "|" all)
  set(${variable} "^(${all})" PARENT_SCOPE)
endfunction()

# keel_extension(<name> [EXCEPT ...] ...) makes target keel_<name> of the extension's sources in all folders.
#   EXCEPT: prefixes of sources that do not belong to it.
# The other arguments are those of keel_add_library.
function(keel_extension name)
  cmake_parse_arguments(ARG "" "PRECOMPILED_BY" "EXCEPT;LINK_PUBLIC;LINK_PRIVATE;PRECOMPILE;ALONE;FULL" ${ARGN})
  keel_extension_regex(own ${name})
  set(sources)
  foreach(folder ${KEEL_FOLDERS})
    keel_sources(found ${folder}/*.cc EXCEPT ${ARG_EXCEPT})
    list(FILTER found INCLUDE REGEX "${own}")
    list(APPEND sources ${found})
  endforeach()
  keel_add_library(${name} SOURCES ${sources} LINK_PUBLIC ${ARG_LINK_PUBLIC} LINK_PRIVATE ${ARG_LINK_PRIVATE}
    PRECOMPILE ${ARG_PRECOMPILE} PRECOMPILED_BY ${ARG_PRECOMPILED_BY} ALONE ${ARG_ALONE} FULL ${ARG_FULL})
  if("layers/${name}_layers.cc" IN_LIST sources)
    target_link_options(keel_${name} INTERFACE LINKER:--undefined=keel_${name}_is_linked)
  endif()
endfunction()
