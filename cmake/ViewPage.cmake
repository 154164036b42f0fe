# The page of `cingulum view`, bundled by esbuild from web/ with the packages that tools/bootstrap has put into the build
# folder. Without them src/view/left_out.html takes its place.

# cingulum_view_page(FILES): sets FILES to index.html, page.js and page.css of the page, for cingulum_embed_text; to
# nothing where they cannot be made.
function(cingulum_view_page files)
  set(web ${PROJECT_SOURCE_DIR}/web)
  file(GLOB esbuild ${CMAKE_BINARY_DIR}/web/node_modules/@esbuild/*/bin/esbuild)
  if(NOT esbuild)
    message(STATUS "cingulum view: no packages for its page in ${CMAKE_BINARY_DIR}/web; it is left out")
    set(${files} "" PARENT_SCOPE)
    return()
  endif()
  set(page ${CMAKE_BINARY_DIR}/web/dist/page.js)
  file(GLOB sources CONFIGURE_DEPENDS ${web}/src/*.ts)
  # Plain ASCII, so that it is the same text wherever it is embedded. Packages are not beside the sources: NODE_PATH.
  add_custom_command(
    OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=${CMAKE_BINARY_DIR}/web/node_modules
            ${esbuild} ${web}/src/page.ts --bundle --minify --format=esm --target=es2022 --charset=ascii --legal-comments=eof
            --log-level=warning --outfile=${page}
    DEPENDS ${sources} ${web}/package-lock.json
    COMMENT "bundling the page of cingulum view" VERBATIM)
  set(${files} ${web}/index.html ${web}/page.css ${page} PARENT_SCOPE)
endfunction()
