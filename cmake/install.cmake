# SPDX-License-Identifier: MIT
# What others get of muster: the library with its name, version and reviewed list of symbols, the
# header, and two ways to find them (pkg-config, find_package). Programs install themselves, see
# muster_program().
include(CMakePackageConfigHelpers)

set(MUSTER_MAP ${PROJECT_SOURCE_DIR}/client/libmuster.map)
set(MUSTER_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/muster)
set(MUSTER_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# 0.x promises nothing between minor versions; the soname number counts breaks of the ABI.
set_target_properties(muster PROPERTIES
	VERSION ${PROJECT_VERSION}
	SOVERSION 0
	LINK_DEPENDS ${MUSTER_MAP})
target_link_options(muster PRIVATE -Wl,--version-script=${MUSTER_MAP} -Wl,--no-undefined-version)

install(TARGETS muster EXPORT musterTargets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/include/muster/muster.h ${PROJECT_SOURCE_DIR}/include/muster/state.h
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/muster)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
	DESTINATION ${CMAKE_INSTALL_DOCDIR})

# From the directory of muster.pc up to the prefix, so that an installed tree may be moved.
file(RELATIVE_PATH MUSTER_PC_UP /prefix/${MUSTER_PC_DIR} /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/muster.pc.in muster.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/muster.pc DESTINATION ${MUSTER_PC_DIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/musterConfig.cmake.in musterConfig.cmake
	INSTALL_DESTINATION ${MUSTER_CMAKE_DIR})
write_basic_package_version_file(musterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
	${PROJECT_BINARY_DIR}/musterConfig.cmake
	${PROJECT_BINARY_DIR}/musterConfigVersion.cmake
	DESTINATION ${MUSTER_CMAKE_DIR})
install(EXPORT musterTargets NAMESPACE muster:: DESTINATION ${MUSTER_CMAKE_DIR})

# systemd looks for units in lib/systemd/system of /usr and /usr/local.
configure_file(${PROJECT_SOURCE_DIR}/deploy/systemd/musterd@.service.in musterd@.service @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/musterd@.service DESTINATION lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/muster.sysusers DESTINATION lib/sysusers.d
	RENAME muster.conf)
# The Python package has no compiled part. Debian's python3 looks for packages of Debian's in
# /usr/lib/python3, and for those of the administrator in /usr/local/lib/python3.N. The package finds
# the library of its own prefix by itself, wherever that is.
set(python python3)
if(NOT CMAKE_INSTALL_PREFIX STREQUAL /usr)
	find_program(MUSTER_PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH)
	if(MUSTER_PYTHON3)
		execute_process(COMMAND ${MUSTER_PYTHON3} -c "import sys; print('python3.%d' % sys.version_info[1])"
			OUTPUT_VARIABLE python OUTPUT_STRIP_TRAILING_WHITESPACE)
	endif()
endif()
set(MUSTER_PYTHON_DIR lib/${python}/dist-packages CACHE STRING "where the Python package goes")
set(package ${PROJECT_SOURCE_DIR}/client/python/muster)
install(DIRECTORY ${package} DESTINATION ${MUSTER_PYTHON_DIR} FILES_MATCHING PATTERN "*.py"
	PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
