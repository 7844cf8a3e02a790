;; Declares a memory to share with threads that there are not.
;; kind: health
;; refused: compile
(component
  (core module $shared (memory 1 2 shared))
  (core instance (instantiate $shared))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
