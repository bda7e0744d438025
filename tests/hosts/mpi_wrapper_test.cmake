# Compiler wrappers as MPIs come with them, and what is found by their answers. cmake -DFOLDER=... -P
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/TuttiMpiWrapper.cmake)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)

file(REMOVE_RECURSE ${FOLDER})
foreach(file openmpi/include/mpi.h openmpi/lib/libmpi.so mpich/include/mpi.h lib/libmpi.so lib/libmpich.so usual/include/mpi.h
             usual/lib/libmpi.so)
  file(WRITE ${FOLDER}/${file} "")
endforeach()

# wrapper(<name> <the form of question that it knows> <its answer>)
function(wrapper name question answer)
  file(WRITE ${FOLDER}/${name} "#!/bin/sh\n[ \"$1\" = ${question} ] || exit 1\necho '${answer}'\n")
  file(CHMOD ${FOLDER}/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()

function(expect name include library)
  tutti_mpi_of_wrapper(${FOLDER}/${name} found_include found_library)
  if(NOT "${found_include} ${found_library}" STREQUAL "${include} ${library}")
    message(SEND_ERROR "${name}: '${found_include}' and '${found_library}', not '${include}' and '${library}'")
  endif()
endfunction()

# Debian's Open MPI.
wrapper(openmpi-mpicc --showme
  "gcc -I${FOLDER}/openmpi/include -I${FOLDER}/openmpi/include/openmpi -L${FOLDER}/openmpi/lib -lmpi")
expect(openmpi-mpicc ${FOLDER}/openmpi/include ${FOLDER}/openmpi/lib/libmpi.so)

# Debian's MPICH, with Open MPI beside it: libmpi.so is the other's.
wrapper(mpich-mpicc -show "gcc -Wl,-z,relro -I${FOLDER}/mpich/include -L${FOLDER}/lib -lmpich")
expect(mpich-mpicc ${FOLDER}/mpich/include ${FOLDER}/lib/libmpich.so)

# Intel's, with quotes and more libraries.
wrapper(intel-mpicc -show "gcc -I\"${FOLDER}/usual/include\" -L\"${FOLDER}/usual/lib\" -lmpifort -lmpi -ldl -lrt")
expect(intel-mpicc ${FOLDER}/usual/include ${FOLDER}/usual/lib/libmpi.so)

# One whose files lie where compilers look anyway.
set(CMAKE_PREFIX_PATH ${FOLDER}/usual)
wrapper(usual-mpicc --showme "gcc -pthread -lmpi")
expect(usual-mpicc ${FOLDER}/usual/include ${FOLDER}/usual/lib/libmpi.so)
expect(openmpi-mpicc ${FOLDER}/openmpi/include ${FOLDER}/openmpi/lib/libmpi.so)

# What is no MPI's.
wrapper(foreign-mpicc --help "")
expect(foreign-mpicc "" "")
