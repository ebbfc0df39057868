# cmake -DINPUT=x.desc -DOUTPUT=x.descriptors.h -DNAME=x -P EmbedDescriptors.cmake: makes a header that
# defines keel::descriptors::x, the bytes of a serialized FileDescriptorSet.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)"
       "\\1\n    " bytes "${bytes}")
file(WRITE ${OUTPUT} "// Generated from ${NAME}.proto.
#pragma once

namespace keel::descriptors {

inline constexpr unsigned char ${NAME}[] = {
    ${bytes}
};

}  // namespace keel::descriptors
")
