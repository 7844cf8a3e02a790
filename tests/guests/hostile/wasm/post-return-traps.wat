;; Answers, and traps while it cleans up.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "clean-up") (param i32) (drop (i32.load (i32.const -1))))
    {{describe}}
    {{configure}}
    {{interpret}})
  {{instance}}
  {{types}}
  {{plugin}}
  (func $interpret (param "observed" (borrow $object)) (result (result $verdict (error $error)))
    (canon lift (core func $code "interpret") (memory (core memory $heap "memory"))
      (post-return (core func $code "clean-up"))))
  (instance $health (export "interpret" (func $interpret)))
  (export "bulkhead:policy/health@0.1.0" (instance $health)))
