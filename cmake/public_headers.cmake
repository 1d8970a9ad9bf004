# Installs the headers a user of the library may include: those of src/trireme itself and of base, and whatever of ours
# they include in turn. What runs the rest stays inside.
file(GLOB to_visit RELATIVE ${PROJECT_SOURCE_DIR}/src CONFIGURE_DEPENDS src/trireme/*.h src/trireme/base/*.h)
list(FILTER to_visit EXCLUDE REGEX "(-inl|/targets)\\.h$")  # for files that are compiled once per SIMD target
set(visited)
while(to_visit)
  list(POP_FRONT to_visit header)
  if(header IN_LIST visited)
    continue()
  endif()
  list(APPEND visited ${header})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/${header})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES src/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
  file(STRINGS src/${header} lines REGEX "^#include \"trireme/")
  list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
  list(APPEND to_visit ${lines})
endwhile()
