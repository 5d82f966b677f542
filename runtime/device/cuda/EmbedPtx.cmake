# Makes a source file that holds the text TEXT as the string NAME.
file(READ "${TEXT}" text)
file(WRITE "${OUTPUT}" "namespace msc::device::cuda {\nextern const char *const ${NAME};\nconst char *const ${NAME} = R\"PTX(${text})PTX\";\n}\n")
