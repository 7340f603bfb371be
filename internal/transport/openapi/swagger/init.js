SwaggerUIBundle({ url: "openapi.json", dom_id: "#ui", deepLinking: true, validatorUrl: null, supportedSubmitMethods: ["get", "post", "delete"] });
