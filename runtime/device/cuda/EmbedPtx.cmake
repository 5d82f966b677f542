# Makes a source file that holds the text TEXT.
file(READ "${TEXT}" text)
file(WRITE "${OUTPUT}"
  "#include \"runtime/device/cuda/Kernels.h\"\n\n"
  "const char *const msc::device::cuda::kernelsPtx = R\"PTX(${text})PTX\";\n")
